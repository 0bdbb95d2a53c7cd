// Numbers of 16 bits.

/** The number that each 16 bits stand for (IEEE 754 binary16). */
export function float16Values() {
  return Float32Array.from({ length: 2 ** 16 }, (_, bits) => {
    const sign = bits >> 15 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
  });
}
