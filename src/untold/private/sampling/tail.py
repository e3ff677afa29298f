"""The normal quantile, for the one truncated normal a PrivUnitG report needs.

Rational approximations of Michael Wichura (1988), "Algorithm AS 241", routine PPND16; the bound stated
below is not his claim but proven, over the whole domain, by Taylor models with ball arithmetic in
``tests/private/test_elementary.py``.
"""

import math

import numpy as np

from untold.compiled import inlined
from untold.private.sampling.elementary import minus_log

__all__ = ["QUANTILE_ERROR", "normal_tail"]

QUANTILE_ERROR = 2.0**-41


@inlined
def central_ratio(q: float) -> float:
    r = 0.180625 - q * q
    top = 2.5090809287301226727e3
    top = top * r + 3.3430575583588128105e4
    top = top * r + 6.7265770927008700853e4
    top = top * r + 4.5921953931549871457e4
    top = top * r + 1.3731693765509461125e4
    top = top * r + 1.9715909503065514427e3
    top = top * r + 1.3314166789178437745e2
    top = top * r + 3.3871328727963666080e0
    low = 5.2264952788528545610e3
    low = low * r + 2.8729085735721942674e4
    low = low * r + 3.9307895800092710610e4
    low = low * r + 2.1213794301586595867e4
    low = low * r + 5.3941960214247511077e3
    low = low * r + 6.8718700749205790830e2
    low = low * r + 4.2313330701600911252e1
    low = low * r + 1.0
    return q * top / low


@inlined
def tail_ratio(r: float) -> float:
    top = 7.74545014278341407640e-4
    top = top * r + 2.27238449892691845833e-2
    top = top * r + 2.41780725177450611770e-1
    top = top * r + 1.27045825245236838258e0
    top = top * r + 3.64784832476320460504e0
    top = top * r + 5.76949722146069140550e0
    top = top * r + 4.63033784615654529590e0
    top = top * r + 1.42343711074968357734e0
    low = 1.05075007164441684324e-9
    low = low * r + 5.47593808499534494600e-4
    low = low * r + 1.51986665636164571966e-2
    low = low * r + 1.48103976427480074590e-1
    low = low * r + 6.89767334985100004550e-1
    low = low * r + 1.67638483018380384940e0
    low = low * r + 2.05319162663775882187e0
    low = low * r + 1.0
    return top / low


@inlined
def far_tail_ratio(r: float) -> float:
    top = 2.01033439929228813265e-7
    top = top * r + 2.71155556874348757815e-5
    top = top * r + 1.24266094738807843860e-3
    top = top * r + 2.65321895265761230930e-2
    top = top * r + 2.96560571828504891230e-1
    top = top * r + 1.78482653991729133580e0
    top = top * r + 5.46378491116411436990e0
    top = top * r + 6.65790464350110377720e0
    low = 2.04426310338993978564e-15
    low = low * r + 1.42151175831644588870e-7
    low = low * r + 1.84631831751005468180e-5
    low = low * r + 7.86869131145613259100e-4
    low = low * r + 1.48753612908506148525e-2
    low = low * r + 1.36929880922735805310e-1
    low = low * r + 5.99832206555887937690e-1
    low = low * r + 1.0
    return top / low


@inlined
def normal_tail(p: float) -> float:
    """The t with P[N(0,1) > t] = p, for 1e−60 ≤ p ≤ ½; absolute error ≤ 2⁻⁴¹.

    All three pieces are computed and two of them multiplied by zero, so that the time it takes does not
    tell which one was needed; the clamps keep the unneeded ones finite.
    """
    r = math.sqrt(minus_log(p))
    central = central_ratio(min(0.5 - p, 0.425))
    near = tail_ratio(min(r, 5.0) - 1.6)
    far = far_tail_ratio(max(r, 5.0) - 5.0)
    is_central = np.float64(p >= 0.075)
    is_near = np.float64(r <= 5.0)
    return is_central * central + (1.0 - is_central) * (is_near * near + (1.0 - is_near) * far)
