"""``--on-fault skip|stop`` and ``--quarantine``: what happens to a faulty step, and to its samples later."""
