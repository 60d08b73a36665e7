"""How to cite the software and the paper, as BibTeX."""

import fairduel

BIBTEX = f"""\
@software{{fairduel,
  title   = {{fairduel}},
  author  = {{{{The fairduel authors}}}},
  version = {{{fairduel.__version__}}},
}}

@inproceedings{{di2025nearly,
  title     = {{Nearly Optimal Algorithms for Contextual Dueling Bandits from Adversarial Feedback}},
  author    = {{Di, Qiwei and He, Jiafan and Gu, Quanquan}},
  booktitle = {{Proceedings of the 42nd International Conference on Machine Learning}},
  year      = {{2025}},
}}
"""
