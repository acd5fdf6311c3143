/* Arithmetic on sizes, which saturates. Blank lines separate functions. */

INLINE int64_t size_add(int64_t x, int64_t y)
{
  if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y)
    return y > 0 ? INT64_MAX : INT64_MIN;
  return x + y;
}

INLINE int64_t size_multiply(int64_t x, int64_t y)
{
  const int64_t most = INT64_MAX / (y == 0 ? 1 : y < 0 ? -y : y);
  return x > most || x < -most ? ((x < 0) == (y < 0) ? INT64_MAX : -INT64_MAX) : x * y;
}

INLINE int64_t size_mod(int64_t x, int64_t y)
{
  const int64_t rest = x % y;
  return rest < 0 ? rest + y : rest;
}

INLINE int64_t size_floordiv(int64_t x, int64_t y)
{
  const int64_t rest = x % y;
  return (x - (rest < 0 ? rest + y : rest)) / y;
}

INLINE int64_t size_max(int64_t x, int64_t y) { return x > y ? x : y; }

INLINE int64_t size_min(int64_t x, int64_t y) { return x < y ? x : y; }
