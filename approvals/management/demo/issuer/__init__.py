"""An OpenID Connect issuer to try with: a Django project of its own, on django-oauth-toolkit.

Nobody has a password here: whoever opens it picks a person. Who there is, and in which groups, stands in the folder's
`people.json` and is read at each token, so that a group that is taken away there is gone at the next refresh. It
listens on the loopback address only. `python -m approvals.management.demo.issuer --help`.
"""
