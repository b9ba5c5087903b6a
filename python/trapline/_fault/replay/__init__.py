"""The user's statements run again, without their side effects, to see which operation made a number."""
