"""The rules of `conf/alerts.yaml`, and the SQL and the message templates in them."""
