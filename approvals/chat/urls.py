"""The chat callbacks' URLs."""

from django.urls import path

from approvals.chat import views

urlpatterns = [
    path("<slug:tool>/commands", views.receive_command, name="chat-command"),
    path("<slug:tool>/decisions", views.receive, name="chat-decision"),
]
