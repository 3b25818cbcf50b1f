"""What people see: one SQL file a panel (`queries/`), and the page that renders them. Starts at `page.py`."""
