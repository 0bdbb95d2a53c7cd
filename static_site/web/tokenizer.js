// The shipped tokenizers: cleaning, pieces, byte-pair encoding (Sennrich 2016) and back, as viz_core and tokenizers do it.

import { makeMerge } from "./pairs.js";

const START = "\u2581"; // where a word starts
const BYTE = /^<0x([0-9A-F]{2})>$/;

/** NFKC, plain spaces, straight apostrophes; no invisible or control characters (viz_core/pretrained/tokenization.py). */
export const clean = (text) =>
  text.replace(/[\p{Cf}\p{Cs}]/gu, "").normalize("NFKC").replaceAll("\u2019", "'").replace(/\p{Cc}/gu, " ").split(/\s+/u).filter(Boolean).join(" ");

/**
 * A tokenizer of the format that Hugging Face's tokenizers write.
 *
 * @param {{vocab: string[], merges: [string, string][], pieces: string}} content as static_site/tokenizers.py writes it
 */
export function makeTokenizer({ vocab, merges, pieces }) {
  const ids = new Map(vocab.map((token, id) => [token, id]));
  const merge = makeMerge(merges);
  const pattern = new RegExp(pieces, "giu");
  const known = new Map(); // of a piece: its ids
  const utf8 = new TextEncoder();

  /** What the text falls into before tokens are sought: words with their mark, then elisions, contractions and signs. */
  function split(text) {
    const marked = text.replaceAll(" ", START);
    const words = (marked.startsWith(START) ? marked : START + marked).match(/\u2581[^\u2581]*/gu) ?? [];
    return words.flatMap((word) => {
      const found = [];
      let at = 0;
      for (const match of word.matchAll(pattern)) {
        found.push(word.slice(at, match.index), match[0]);
        at = match.index + match[0].length;
      }
      return [...found, word.slice(at)].filter(Boolean);
    });
  }

  /** The letters of a piece; one that the vocabulary lacks is spelled by its bytes. */
  function letters(piece) {
    return [...piece].flatMap((letter) => {
      if (ids.has(letter)) return [letter];
      const bytes = [...utf8.encode(letter)].map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
      return bytes.every((byte) => ids.has(byte)) ? bytes : ["<unk>"];
    });
  }

  function encode(text) {
    return split(text.normalize("NFKC")).flatMap((piece) => {
      if (!known.has(piece)) known.set(piece, merge(letters(piece)).map((part) => ids.get(part)));
      return known.get(piece);
    });
  }

  const isSpecial = (token) => /^<(?!0x)[^<>\s]+>$/.test(token) && ids.get(token) < 4;

  /** The text that tokens stand for: bytes as letters, marks as spaces, special tokens left out. */
  function decode(tokens) {
    let text = "";
    let bytes = [];
    const flush = () => {
      if (!bytes.length) return;
      try {
        text += new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
      } catch {
        text += "\ufffd".repeat(bytes.length);
      }
      bytes = [];
    };
    for (const token of tokens.map((id) => vocab[id]).filter((each) => !isSpecial(each))) {
      const byte = token.match(BYTE);
      if (byte) bytes.push(parseInt(byte[1], 16));
      else {
        flush();
        text += token;
      }
    }
    flush();
    return text.replaceAll(START, " ").replace(/^ /, "");
  }

  return { encode, decode, id: (token) => ids.get(token), token: (id) => vocab[id] ?? "<unk>" };
}

/** A token without the mark of a word's start. */
export const readable = (token) => token.replace(/^\u2581/, "") || "\u00b7";

/** Whether a token is a byte of a letter that the vocabulary lacks. */
export const isSpelled = (token) => BYTE.test(token);

/** For each piece the number of its word (viz_core/maps/word_maps.py): marked starts, special tokens, signs, apostrophes. */
export function wordNumbers(pieces) {
  const special = /^(<(?!0x[0-9A-F]{2}>)[^<>\s]+>|\[[A-Z]+\d*\])$/;
  const isStart = (piece) => piece.startsWith(START);
  const starts = pieces.some(isStart);
  const numbers = [];
  let alone = true; // whether the piece before lets nothing join it
  pieces.forEach((piece, i) => {
    const text = piece.replace(/^\u2581+/, "");
    let sign = special.test(text) || !/[\p{L}\p{N}]/u.test(text);
    let joins = starts && !isStart(piece) && !alone && !sign;
    if (starts && !alone && (piece === "'" || piece === "\u2019") && /^\p{L}/u.test(pieces[i + 1] ?? "")) {
      sign = false;
      joins = true; // within a word: don't
    }
    numbers.push(numbers.length ? numbers.at(-1) + (joins ? 0 : 1) : 0);
    alone = special.test(text) || (sign && Boolean(text));
  });
  return numbers;
}
