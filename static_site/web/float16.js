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

/** The nearest number of 16 bits for each number, ties to the even one. */
export function toFloat16(values) {
  const bits = new Uint32Array(Float32Array.from(values).buffer);
  return Uint16Array.from(bits, (word) => {
    const sign = (word >>> 16) & 0x8000;
    const exponent = ((word >>> 23) & 255) - 112; // 127 - 15
    const fraction = word & 0x7fffff;
    if (exponent >= 31) return sign | 0x7c00;
    const shift = exponent > 0 ? 13 : 14 - exponent;
    if (shift > 24) return sign;
    const whole = exponent > 0 ? (exponent << 23) | fraction : fraction | 0x800000;
    const rest = whole & ((1 << shift) - 1);
    const half = 1 << (shift - 1);
    const cut = whole >>> shift;
    return sign | (cut + (rest > half || (rest === half && cut & 1) ? 1 : 0));
  });
}
