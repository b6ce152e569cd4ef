"""The chat callbacks' URLs."""

from django.urls import path

from approvals.chat import views

urlpatterns = [
    path("slack/commands", views.slack_command, name="chat-slack-command"),
    path("<slug:tool>/decisions", views.receive, name="chat-decision"),
]
