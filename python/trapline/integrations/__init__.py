"""What the usual trainers tell Trapline: one module each, none imported unless the program asks for it.

The guard works without them, and names the step, the epoch and the model of transformers' Trainer and
Lightning's by itself. docs/trainers.md says what each one adds.
"""
