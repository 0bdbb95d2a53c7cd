// The tokenizers of the models, run by Hugging Face's library, and tokens as people read them (viz_core/hub/runs/token_text.py,
// viz_core/maps/word_maps.py).

import { inputError } from "./model.js";
import { loadFile, unzip } from "./page.js";
import { Tokenizer } from "./vendor/tokenizers/tokenizers.min.mjs";

const NUM_SPECIAL = 4; // the first ids of every vocabulary here

/** A tokenizer of a file of the site: `encode` and `decode`, and tokens by id and back. */
export async function openTokenizer(file) {
  const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(await unzip(await loadFile(file)))), {});
  return {
    encode: (text) => tokenizer.encode(text).ids,
    decode(ids) {
      const texts = ids.filter((id) => id >= NUM_SPECIAL);
      return texts.length ? tokenizer.decode(texts, { clean_up_tokenization_spaces: false }) : "";
    },
    id: (token) => tokenizer.token_to_id(token),
    token: (id) => tokenizer.id_to_token(id) ?? "<unk>",
  };
}

/** NFKC, plain spaces, straight apostrophes; no invisible or control characters (viz_core/pretrained/tokenization.py). */
export const clean = (text) =>
  text.replace(/[\p{Cf}\p{Cs}]/gu, "").normalize("NFKC").replaceAll("\u2019", "'").replace(/\p{Cc}/gu, " ").split(/\s+/u).filter(Boolean).join(" ");

/** A token without the mark of a word's start. */
export const readable = (token) => token.replace(/^\u2581/, "") || "\u00b7";

/** Whether a token is a byte of a letter that the vocabulary lacks. */
export const isSpelled = (token) => /^<0x[0-9A-F]{2}>$/.test(token);

/** For each piece the number of its word (viz_core/maps/word_maps.py): marked starts, special tokens, signs, apostrophes. */
export function wordNumbers(pieces) {
  const special = /^(<(?!0x[0-9A-F]{2}>)[^<>\s]+>|\[[A-Z]+\d*\])$/;
  const isStart = (piece) => piece.startsWith("\u2581"); // of a word
  const starts = pieces.some(isStart);
  const numbers = [];
  let alone = true; // whether the piece before lets nothing join it
  pieces.forEach((piece, i) => {
    const text = piece.replace(/^\u2581+/, "");
    const isInWord = !alone && (piece === "'" || piece === "\u2019") && /^\p{L}/u.test(pieces[i + 1] ?? ""); // don't
    const sign = !isInWord && (special.test(text) || !/[\p{L}\p{N}]/u.test(text));
    const joins = starts && !isStart(piece) && !alone && !sign;
    numbers.push(numbers.length ? numbers.at(-1) + (joins ? 0 : 1) : 0);
    alone = special.test(text) || (sign && Boolean(text));
  });
  return numbers;
}

const SPACE = "\u00b7"; // stands for the space before a word
const SIGNS = { "\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5" };
const JOINER = "\u200d";

/** Token ids of a text for the writer; refuses what the library refuses (`clean_text` of viz_core/hub/runs/tokenizers.py). */
export function encodeText(tokenizer, text, room) {
  const cleaned = text.replace(/\r\n?/gu, "\n").replace(/[\p{Cc}\p{Cs}]/gu, (sign) => ("\n\t".includes(sign) ? sign : ""));
  if (!cleaned.trim()) throw inputError("empty");
  const ids = tokenizer.encode(cleaned);
  if (ids.length > room) throw inputError("too-many", { count: ids.length, most: room });
  return ids;
}

/** The byte that each sign of a byte-level vocabulary stands for: printed ones stand for themselves. */
const isPrinted = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
const bytes = Array.from({ length: 256 }, (_, byte) => byte);
const BYTES = new Map(bytes.filter(isPrinted).map((byte) => [String.fromCharCode(byte), byte]));
bytes.filter((byte) => !isPrinted(byte)).forEach((byte, i) => BYTES.set(String.fromCharCode(256 + i), byte));

/** Tokens with `label`, `startsWord` and `special`; one of several tokens of a character is labelled "🎉 1/3". */
export function readTokens(tokenizer, ids) {
  const tokens = [];
  let run = []; // tokens whose bytes are not yet a whole character
  const flush = () => {
    tokens.push(...labelled(run));
    run = [];
  };
  for (const id of ids) {
    if (id < NUM_SPECIAL) {
      flush();
      tokens.push({ label: tokenizer.token(id), startsWord: false, special: true });
      continue;
    }
    const whole = [...tokenizer.token(id)].map((sign) => BYTES.get(sign));
    const startsWord = whole[0] === 32;
    const piece = { content: startsWord ? whole.slice(1) : whole, startsWord };
    if (run.length && textOf([...run, piece], { stream: true }) === null) flush();
    run.push(piece);
    if (textOf(run) !== null || textOf(run, { stream: true }) === null) flush();
  }
  flush();
  return tokens;
}

/** The text of all bytes of a run, or null where they are none; with `stream` also the beginning of one. */
function textOf(run, options) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(run.flatMap(({ content }) => content)), options);
  } catch {
    return null;
  }
}

function labelled(run) {
  const text = textOf(run);
  const of = (label, startsWord) => ({ label: `${startsWord ? SPACE : ""}${label}`, startsWord, special: false });
  const hex = (content) => content.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
  if (text === null) return run.map(({ content, startsWord }) => of(`<${hex(content)}>`, startsWord));
  if (run.length === 1) return [of(visible(text) || (run[0].startsWord ? "" : SPACE), run[0].startsWord)];
  return run.map(({ startsWord }, i) => of(`${visible(text)} ${i + 1}/${run.length}`, startsWord));
}

/** Invisible characters as signs, or by their number (`visible` of viz_core/hub/runs/token_text.py). */
function visible(text) {
  if (!text) return "";
  if (/^\p{White_Space}+$/u.test(text)) return [...text].map((sign) => SIGNS[sign] ?? "\u2423").join("");
  const shown = [...text].map((sign) => SIGNS[sign] ?? sign);
  const isHidden = (sign) => /[\p{C}\u2028\u2029]/u.test(sign);
  const hidden = shown.filter(isHidden);
  if (!hidden.length) return shown.join("");
  const isJoined = hidden.every((sign) => sign === JOINER) && shown[0] !== JOINER && shown.at(-1) !== JOINER;
  const named = (sign) => (/\p{C}/u.test(sign) ? `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` : sign);
  return (isJoined ? shown : shown.map(named)).join("");
}

/** For each token of `readTokens` the number of its word: a special token is one of its own. */
export function wordsOf(tokens) {
  let word = -1;
  let afterSpecial = true;
  return tokens.map(({ startsWord, special }) => {
    if (word < 0 || startsWord || special || afterSpecial) word += 1;
    afterSpecial = special;
    return word;
  });
}
