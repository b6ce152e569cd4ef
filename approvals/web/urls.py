"""The pages' URLs."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
