"""When does pre-training on RNA sequences transfer? (ICML 2026): encoders, arms, tasks and geometry."""
