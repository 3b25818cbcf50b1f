"""Records of a stretch of the offsets log, folded into what the core needs of them."""
