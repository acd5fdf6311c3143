"""Plain `jax.numpy`, `jax.scipy` and `jax.lax`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

from .programs import Made, Program, floats, key_data


def ridge_regression() -> Made:
    def fit(x, y, strength):
        gram = x.T @ x + strength * jnp.eye(x.shape[1])
        return jnp.linalg.solve(gram, x.T @ y)

    return fit, (floats(200, 12), floats(200, seed=1), np.float32(0.5))


def principal_components() -> Made:
    def components(x):
        centred = x - x.mean(axis=0)
        _, singular, rows = jnp.linalg.svd(centred, full_matrices=False)
        return singular, jnp.abs(rows[:3])

    return components, (floats(64, 8) * np.arange(1, 9, dtype=np.float32),)


def low_pass_filter() -> Made:
    def smooth(signal, cutoff):
        spectrum = jnp.fft.rfft(signal)
        kept = jnp.where(jnp.arange(spectrum.shape[0]) < cutoff, spectrum, 0)
        return jnp.fft.irfft(kept, n=signal.shape[0])

    return smooth, (floats(512), np.int32(40))


def nearest_centres() -> Made:
    def kmeans(points, centres):
        def step(centres, _):
            distance = ((points[:, None] - centres[None]) ** 2).sum(-1)
            nearest = distance.argmin(1)
            hot = jax.nn.one_hot(nearest, centres.shape[0])
            return (hot.T @ points) / jnp.maximum(hot.sum(0), 1.0)[:, None], nearest

        centres, nearest = jax.lax.scan(step, centres, None, length=10)
        return {"centres": centres, "nearest": nearest[-1]}

    points = np.concatenate([floats(50, 2, seed=s) * 0.2 + 3 * s for s in range(3)])
    return kmeans, (points, points[[0, 60, 120]])


def student_t_likelihood() -> Made:
    def negative(params, x):
        scale = jnp.exp(params["log_scale"])
        return -jsp.stats.t.logpdf(x, 5.0, params["mean"], scale).sum()

    params = {"mean": np.float32(0.1), "log_scale": np.float32(0.2)}
    return jax.value_and_grad(negative), (params, floats(100))


def newton_rosenbrock() -> Made:
    def minimum(start):
        def rosenbrock(x):
            return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

        def step(state):
            x, count, _ = state
            slope = jax.grad(rosenbrock)(x)
            return x - jnp.linalg.solve(jax.hessian(rosenbrock)(x), slope), count + 1, jnp.abs(slope).max()

        start = (start, 0, jnp.float32(jnp.inf))
        return jax.lax.while_loop(lambda s: (s[1] < 50) & (s[2] > 1e-3), step, start)[0]

    return minimum, (np.array([-1.2, 1.0, 0.5], np.float32),)


def lorenz_runge_kutta() -> Made:
    def trajectory(state, dt):
        def slope(s):
            x, y, z = s
            return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

        def step(s, _):
            k1 = slope(s)
            k2 = slope(s + dt / 2 * k1)
            k3 = slope(s + dt / 2 * k2)
            k4 = slope(s + dt * k3)
            s = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return s, s

        return jax.lax.scan(step, state, None, length=100)[1]

    return trajectory, (np.array([1, 1, 1], np.float32), np.float32(0.01))


def monte_carlo_option() -> Made:
    def price(key, spot, strike):
        draws = jax.random.normal(key, (20000,))
        last = spot * jnp.exp(-0.5 * 0.2**2 + 0.2 * draws)
        return jnp.maximum(last - strike, 0).mean()

    return price, (key_data(3), np.float32(100), np.float32(105))


def gaussian_process() -> Made:
    def posterior(x, y, new):
        def kernel(a, b):
            return jnp.exp(-0.5 * (a[:, None] - b[None]) ** 2)

        lower = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(x.shape[0]))
        alpha = jsp.linalg.cho_solve((lower, True), y)
        cross = kernel(new, x)
        half = jsp.linalg.solve_triangular(lower, cross.T, lower=True)
        return cross @ alpha, 1.1 - (half**2).sum(0)

    x = np.linspace(-3, 3, 40, dtype=np.float32)
    return posterior, (x, np.sin(x), np.linspace(-2, 2, 15, dtype=np.float32))


def resize_and_blur() -> Made:
    def shrink(image):
        small = jax.image.resize(image, (24, 24, 3), "bicubic")
        window = jnp.outer(jnp.array([1.0, 2, 1]), jnp.array([1.0, 2, 1])) / 16
        return jax.vmap(lambda c: jsp.signal.convolve2d(c, window, mode="same"), 2, 2)(small)

    return shrink, (floats(48, 48, 3),)


PROGRAMS = (
    Program("ridge regression", ridge_regression),
    Program("principal components (SVD)", principal_components),
    Program("low-pass filter (FFT)", low_pass_filter),
    Program("k-means (scan)", nearest_centres),
    Program("gradient of a Student-t likelihood", student_t_likelihood),
    Program("Newton with a Hessian (while_loop)", newton_rosenbrock, 1e-3),
    Program("Lorenz trajectory (Runge-Kutta in a scan)", lorenz_runge_kutta, 1e-3),
    Program("Monte Carlo price of an option", monte_carlo_option),
    Program("Gaussian process posterior (Cholesky)", gaussian_process, 1e-3),
    Program("bicubic resize and blur", resize_and_blur),
)
