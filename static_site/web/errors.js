// What a reader gave that a model cannot take.

/** An input that is refused; its message is the name of the sentence that says why. */
export class InputError extends Error {
  constructor(sentence, values = {}) {
    super(sentence);
    this.name = "InputError";
    this.values = values;
  }
}
