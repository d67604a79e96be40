"""The ground: plans, templates, search spaces, errors. Nothing here asks a device."""
