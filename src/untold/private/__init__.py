"""Everything that touches privacy: noise, the randomisers that use it, and what may be claimed of them."""
