"""Who gets which alert, and when: routes, quiet hours, maintenance and mutes, as pure functions."""
