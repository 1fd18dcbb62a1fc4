// Calls the function of a script for each row of a batch, and collects columns of JSON values.
// The script runs later in the same context, so the functions of the language are saved first.
(() => {
  "use strict";
  const { parse, stringify, rawJSON } = JSON;
  const { now, prototype: { toISOString, getTime } } = Date;
  const { keys, create, is, prototype: objects } = Object;
  const { isArray, from, prototype: arrays } = Array;
  const { isSafeInteger, isFinite, isInteger } = Number;
  const { isView } = ArrayBuffer;
  const { toBase64 } = Uint8Array.prototype;
  const { fromBase64 } = Uint8Array;
  const { exec } = RegExp.prototype;
  const { call } = Function.prototype;
  const { get: mapGet } = Map.prototype;
  const { toExponential, toPrecision, valueOf: numberOf } = Number.prototype;
  const { toLowerCase, replace } = String.prototype;
  const {
    Date: DateType, Map: MapType, Set: SetType, Uint8Array: Bytes, ArrayBuffer: Buffer,
    Error: ErrorType, TypeError: WrongType, BigInt: Integer, Number: Double, String: Text,
    Function: Code,
  } = globalThis;
  const apply = Reflect.apply;
  const PLACE = /penstock-code:(\d+):(\d+)/;
  const UNSAFE = /\d{16}/;

  for (const name of [
    "Atomics", "SharedArrayBuffer", "WebAssembly", "console", "setTimeout", "clearTimeout",
    "__timer_manager",
  ]) if (!Reflect.deleteProperty(globalThis, name)) globalThis[name] = undefined;

  let process, make, rows, next, total, limit, running = false;
  let names, closed, index, columns, counts, failures;

  // ---- input ----

  const integer = (text) => {
    const value = Integer(text);
    return isSafeInteger(Double(value)) ? Double(value) : value;
  };

  // Returns the number of a JSON text; a BigInt or the text itself if a double would round it.
  const exact = (text) => {
    const value = Double(text);
    if (!apply(exec, /[.eE]/, [text])) return isSafeInteger(value) ? value : Integer(text);
    const digits = (number) => apply(replace, apply(replace, number, [/[eE].*$|[-.]/g, ""]), [/^0+/, ""]);
    const count = digits(text).length;
    const same = count <= 15 ||
      (count <= 100 && digits(apply(toPrecision, value, [count])) === digits(text));
    return same ? value : text;
  };

  const json = (text) => UNSAFE.test(text)
    ? parse(text, (_, value, context) => typeof value === "number" ? exact(context.source) : value)
    : parse(text);

  const decode = (value, kind) => {
    if (value === null) return null;
    if (kind === "integer") return typeof value === "string" ? integer(value) : value;
    if (kind === "float") return typeof value === "string" ? Double(value) : value;
    if (kind === "bytes") return fromBase64(value);
    if (kind === "json") return json(value);
    if (isArray(kind)) {
      for (let i = 0; i < value.length; i++) value[i] = decode(value[i], kind[0]);
    } else {
      for (const key of keys(value)) {
        const inner = kind["*"] ?? kind[key];
        if (inner) value[key] = decode(value[key], inner);
      }
    }
    return value;
  };

  const maker = (columnNames, values) => {
    const fields = columnNames.map((name, i) =>
      `${name === "__proto__" ? '["__proto__"]' : stringify(name)}: c[${i}][i]`);
    return new Code("c", `return (i) => ({${fields.join(", ")}})`)(values);
  };

  // ---- output ----

  const number = (value) => {
    if (isSafeInteger(value)) return is(value, -0) ? rawJSON("-0.0") : value;
    if (!isFinite(value)) return Text(value);
    return isInteger(value) ? rawJSON(apply(toExponential, value, [])) : value;
  };

  const clean = (value) => {
    switch (typeof value) {
      case "string": case "boolean": return value;
      case "number": return number(value);
      case "bigint": return rawJSON(Text(value));
      case "object": return value === null ? null : object(value);
      case "undefined": return null;
      default: throw new WrongType(`a ${typeof value} is not a value of a column`);
    }
  };

  const object = (value) => {
    if (value instanceof DateType) {
      if (getTime.call(value) !== getTime.call(value)) throw new WrongType("an invalid Date");
      return apply(toISOString, value, []);
    }
    if (isView(value)) return apply(toBase64, new Bytes(value.buffer, value.byteOffset, value.byteLength), []);
    if (value instanceof Buffer) return apply(toBase64, new Bytes(value), []);
    if (isArray(value)) {
      const items = [];
      for (let i = 0; i < value.length; i++) items[i] = clean(value[i]);
      return items;
    }
    if (value instanceof SetType) return clean(from(value));
    const result = create(null);
    if (value instanceof MapType) {
      for (const [key, item] of value) result[Text(key)] = clean(item);
      return result;
    }
    if (typeof value.toJSON === "function") return clean(value.toJSON());
    if (typeof value.then === "function") throw new WrongType("a Promise is not a value; the function must not be async");
    for (const key of keys(value)) {
      if (value[key] !== undefined) result[key] = clean(value[key]);
    }
    return result;
  };

  const position = (name) => index[name] ?? index[apply(toLowerCase, name, [])];

  const addRow = (row, at) => {
    let known = 0, count = 0;
    for (let c = 0; c < columns.length; c++) columns[c][at] = null;
    for (const name of keys(row)) {
      count++;
      const c = position(name);
      if (c === undefined) {
        if (closed) throw new WrongType(`the output has no column "${name}"; declare the columns in schema`);
      } else {
        known++;
        columns[c][at] = clean(row[name]);
      }
    }
    if (count && !known) throw new WrongType(`a row has none of the columns, but ${keys(row)}`);
  };

  const found = (value) => value === undefined ? "undefined" : isArray(value) ? "an array"
    : value && typeof value.then === "function" ? "a Promise" : `a ${typeof value}`;

  const isRow = (value) => typeof value === "object" && !isArray(value) && typeof value.then !== "function";

  const add = (result) => {
    if (result === null) return 0;
    const list = isArray(result) ? result : [result];
    const start = total;
    let at = start;
    for (let i = 0; i < list.length; i++) {
      if (list[i] === null) continue;
      if (!isRow(list[i])) {
        throw new WrongType(`expected an object, an array of objects or null, found ${found(list[i])}`);
      }
      addRow(list[i], at++);
    }
    return at - start;
  };

  const undo = () => {
    for (let c = 0; c < columns.length; c++) columns[c].length = total;
  };

  const fail = (message, line, column) => {
    running = false;
    undo();
    counts[next] = 0;
    failures[failures.length] = [next, message, line, column];
    next++;
  };

  const failWith = (error) => {
    let message = "an error without text", place = null;
    try {
      message = error instanceof ErrorType ? `${error.name}: ${error.message}` : `thrown: ${Text(error)}`;
      place = apply(exec, PLACE, [Text(error.stack)]);
    } catch {}
    fail(Text(message), place ? +place[1] : 0, place ? +place[2] : 0);
  };

  return {
    bind(entry) { process = entry; },
    // Starts a batch.
    begin(text, settings) {
      const options = parse(settings), input = parse(text);
      ({ names, closed } = options);
      limit = options.milliseconds;
      rows = options.rows; next = 0; total = 0;
      counts = []; failures = []; columns = names.map(() => []);
      index = create(null);
      names.forEach((name, c) => { index[apply(toLowerCase, name, [])] ??= c; });
      names.forEach((name, c) => { index[name] = c; });
      options.kinds.forEach((kind, c) => {
        if (kind) for (let i = 0; i < rows; i++) input[c][i] = decode(input[c][i], kind);
      });
      make = maker(options.inputs, input);
    },
    // Processes rows until a time is over, at least one. Returns the number of processed rows.
    step(budget) {
      const start = now();
      let before = start;
      while (next < rows) {
        try {
          running = true;
          counts[next] = add(process(make(next)));
          running = false;
          const after = now();
          if (after - before > limit) { running = true; return -1; }
          before = after;
          total += counts[next];
          next++;
        } catch (error) {
          failWith(error);
          before = now();
        }
        if (before - start >= budget) break;
      }
      return next;
    },
    // Runs promises, which V8 does between two calls.
    settle() {},
    // Ends the row that was interrupted with an error. Returns -1 if none was running.
    skip(message) {
      if (!running) return -1;
      fail(message, 0, 0);
      return next;
    },
    finish() {
      for (const each of [objects, arrays]) delete each.toJSON;
      return stringify({ counts, columns, failures });
    },
  };
})()
