"""The lab: measuring, comparing, tuning and reporting. The library imports none of it."""
