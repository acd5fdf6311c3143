"""Solvers and samplers: diffrax, jaxopt, optimistix, blackjax, distrax."""

from __future__ import annotations

import blackjax
import diffrax
import distrax
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import optimistix

from .programs import Made, Program, floats, key_data


def tsit5() -> Made:
    def solve(y0, rate):
        term = diffrax.ODETerm(lambda t, y, args: -args * y)
        times = diffrax.SaveAt(ts=jnp.linspace(0.0, 2.0, 9))
        control = diffrax.PIDController(rtol=1e-5, atol=1e-6)
        found = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 2.0, 0.1, y0, args=rate, saveat=times, stepsize_controller=control, throw=False
        )
        return found.ys

    return solve, (np.array([1.0, 2.0], np.float32), np.float32(0.7))


def kvaerno5() -> Made:
    def solve(y0):
        def robertson(t, y, args):
            a, b = 0.04 * y[0], 1e4 * y[1] * y[2]
            c = 3e7 * y[1] ** 2
            return jnp.stack([-a + b, a - b - c, c])

        control = diffrax.PIDController(rtol=1e-4, atol=1e-6)
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(robertson), diffrax.Kvaerno5(), 0.0, 10.0, 1e-4, y0,
            stepsize_controller=control, throw=False,
        )  # fmt: skip
        return found.ys

    return solve, (np.array([1.0, 0.0, 0.0], np.float32),)


def brownian_path() -> Made:
    def solve(key, y0):
        path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.3, path)
        )
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.02, y0, throw=False).ys

    return solve, (key_data(0), np.float32(1.0))


def jaxopt_lbfgs() -> Made:
    def fit(start, x, y):
        def loss(w):
            return jnp.log1p(jnp.exp(-y * (x @ w))).mean() + 0.01 * (w**2).sum()

        return jaxopt.LBFGS(fun=loss, maxiter=20).run(start).params

    return fit, (np.zeros(4, np.float32), floats(60, 4), np.sign(floats(60, seed=1)))


def jaxopt_projected() -> Made:
    def fit(start, x, y):
        def loss(w):
            return ((x @ w - y) ** 2).mean()

        solver = jaxopt.ProjectedGradient(fun=loss, projection=jaxopt.projection.projection_simplex, maxiter=50)
        return solver.run(start).params

    return fit, (np.full(4, 0.25, np.float32), floats(60, 4), floats(60, seed=1))


def jaxopt_bisection() -> Made:
    def root(shift):
        return jaxopt.Bisection(lambda x: x**3 - x - shift, 1.0, 3.0, maxiter=30, check_bracket=False).run().params

    return root, (np.float32(2.0),)


def optimistix_newton() -> Made:
    def root(start, a):
        def residual(x, a):
            return jnp.tanh(a @ x) - 0.5 * x + 0.1

        return optimistix.root_find(residual, optimistix.Newton(1e-5, 1e-5), start, args=a, throw=False).value

    return root, (np.zeros(3, np.float32), floats(3, 3) / 3)


def optimistix_levenberg() -> Made:
    def fit(start, x, y):
        def residual(p, _):
            return p["a"] * jnp.exp(-p["b"] * x) - y

        solver = optimistix.LevenbergMarquardt(1e-5, 1e-5)
        return optimistix.least_squares(residual, solver, start, throw=False).value

    x = np.linspace(0, 3, 40, dtype=np.float32)
    return fit, ({"a": np.float32(1.0), "b": np.float32(1.0)}, x, 2 * np.exp(-0.7 * x))


def optimistix_bfgs() -> Made:
    def minimum(start):
        def rosenbrock(x, _):
            return (1 - x[0]) ** 2 + 20 * (x[1] - x[0] ** 2) ** 2

        return optimistix.minimise(rosenbrock, optimistix.BFGS(1e-4, 1e-4), start, throw=False).value

    return minimum, (np.array([-0.5, 0.8], np.float32),)


def _log_density(x):
    return -0.5 * (x**2 / jnp.array([1.0, 4.0])).sum()


def blackjax_hmc() -> Made:
    def sample(key, start):
        kernel = blackjax.hmc(_log_density, 0.3, jnp.ones(2), 5)

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(start), jax.random.split(key, 20))[1]

    return sample, (key_data(1), np.zeros(2, np.float32))


def blackjax_nuts() -> Made:
    def sample(key, start):
        kernel = blackjax.nuts(_log_density, 0.5, jnp.ones(2))

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(start), jax.random.split(key, 5))[1]

    return sample, (key_data(2), np.zeros(2, np.float32))


def blackjax_mala() -> Made:
    def sample(key, start):
        kernel = blackjax.mala(_log_density, 0.1)

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(start), jax.random.split(key, 20))[1]

    return sample, (key_data(3), np.zeros(2, np.float32))


def distrax_mixture() -> Made:
    def likelihood(logits, means, x):
        mixture = distrax.MixtureSameFamily(
            distrax.Categorical(logits=logits), distrax.Normal(means, jnp.ones_like(means))
        )
        return mixture.log_prob(x)

    return likelihood, (np.zeros(3, np.float32), np.array([-2, 0, 2], np.float32), floats(50))


def distrax_flow() -> Made:
    def flow(shift, scale, key):
        chain = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(shift, scale)])
        return distrax.Transformed(distrax.Normal(jnp.zeros(4), jnp.ones(4)), chain).sample_and_log_prob(seed=key)

    return flow, (np.float32(0.3), np.float32(0.5), key_data(4))


#: settings for diffrax, which uses equinox's `error_if`, whose check calls Python
_NAN = {"note": "EQX_ON_ERROR=nan", "environment": (("EQX_ON_ERROR", "nan"),)}
PROGRAMS = (
    Program("diffrax Tsit5, adaptive steps", tsit5, **_NAN),
    Program("diffrax Kvaerno5, a stiff system", kvaerno5, 1e-3, **_NAN),
    Program("diffrax Euler on a Brownian path", brownian_path, **_NAN),
    Program("jaxopt L-BFGS", jaxopt_lbfgs, 1e-3),
    Program("jaxopt projected gradient", jaxopt_projected, 1e-3),
    Program("jaxopt bisection", jaxopt_bisection),
    Program("optimistix Newton", optimistix_newton),
    Program("optimistix Levenberg-Marquardt", optimistix_levenberg, 1e-3),
    Program("optimistix BFGS", optimistix_bfgs, 1e-3),
    Program("blackjax HMC", blackjax_hmc, 1e-3),
    Program("blackjax NUTS", blackjax_nuts, 1e-3),
    Program("blackjax MALA", blackjax_mala, 1e-3),
    Program("distrax mixture", distrax_mixture),
    Program("distrax flow with its density", distrax_flow),
)
