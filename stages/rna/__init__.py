"""RNA molecules: structures as lists of pairs, the alphabet, scores of predicted pairs, sequence identity."""
