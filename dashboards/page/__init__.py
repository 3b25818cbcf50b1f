"""What every board is built on: addresses and links, questions about the past, templates, assets, and what a board is.

Nothing here knows a single board; `dashboards/site.py` puts boards and page together.
"""
