"""What is remembered of several models that judged the same rows, beside what each has alone."""
