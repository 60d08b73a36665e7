"""What is computed beside voting: results, evidence, what-if questions, exports."""
