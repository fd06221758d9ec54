"""MixEmo: cross-subject emotion recognition by mixing single-distribution subsets of the training windows."""
