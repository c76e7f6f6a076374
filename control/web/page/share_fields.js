// What can be said of projects and shares when they are made and afterwards, as the forms ask for it.

/** @typedef {import("./dialog.js").Field} Field */

const BLOCKS = ["512", "1K", "2K", "4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M"];

/** @type {Field} */
const LOGBIAS = {
  key: "logbias",
  label: "Log bias",
  kind: "choice",
  options: [
    ["latency", "latency: synchronous writes through the log"],
    ["throughput", "throughput: straight to their place"],
  ],
  value: "latency",
};
/** @type {Field} */
const COMPRESSION = {
  key: "compression",
  label: "Compression",
  kind: "choice",
  options: ["on", "off", "lz4", "zstd", "gzip", "zle", "lzjb"],
  value: "on",
};
/** @type {Field} */
const SYNC = {
  key: "sync",
  label: "Synchronous writes",
  kind: "choice",
  options: [
    ["standard", "standard: as clients ask"],
    ["always", "always"],
    ["disabled", "disabled: a power cut loses acknowledged writes"],
  ],
  value: "standard",
};
/** @type {Field} */
const READONLY = { key: "readonly", label: "Read only", kind: "flag", value: false };
/** @type {Field} */
const NODESTROY = { key: "nodestroy", label: "Protected from being destroyed", kind: "flag", value: false };
/** @type {Field} */
const RECORDSIZE = {
  key: "recordsize",
  label: "Record size",
  kind: "choice",
  options: BLOCKS,
  value: "128K",
  hint: "Of new files; a database\u2019s files want its page size.",
};
/** @type {Field} */
const QUOTA = {
  key: "quota",
  label: "Quota",
  kind: "size",
  optional: true,
  hint: "At most as much; empty: none. 0 takes it away.",
};
/** @type {Field} */
const RESERVATION = {
  key: "reservation",
  label: "Reservation",
  kind: "size",
  optional: true,
  hint: "As much is kept for it.",
};
/** @type {Field} */
const NAME = { key: "name", label: "Name" };

/** @type {Field[]} */
export const NEW_PROJECT = [NAME, LOGBIAS, COMPRESSION, { ...RECORDSIZE, hint: "That its file systems inherit." }];

/** @type {Field[]} */
export const NEW_LUN = [
  NAME,
  { key: "volsize", label: "Size", kind: "size", value: "10G", hint: "Such as 256G or 1T." },
  {
    key: "volblocksize",
    label: "Block size",
    kind: "choice",
    options: BLOCKS,
    value: "16K",
    hint: "What the client writes at once: InnoDB pages are 16K. It stays as it is.",
  },
  { key: "sparse", label: "Thin: take space as it is written", kind: "flag", value: false },
  { key: "targetgroup", label: "Target group", kind: "choice" },
  { key: "initiatorgroup", label: "Initiator groups", kind: "many" },
];

/** @type {Field[]} */
export const NEW_FILESYSTEM = [NAME, RECORDSIZE, COMPRESSION, QUOTA];

/** @type {Record<"project" | "lun" | "filesystem", Field[]>} */
export const CHANGES = {
  project: [LOGBIAS, COMPRESSION, RECORDSIZE, SYNC, QUOTA, RESERVATION, READONLY, NODESTROY],
  lun: [
    { key: "volsize", label: "Size", kind: "size" },
    LOGBIAS,
    COMPRESSION,
    SYNC,
    { key: "targetgroup", label: "Target group", kind: "choice" },
    { key: "initiatorgroup", label: "Initiator groups", kind: "many" },
    { key: "status", label: "State", kind: "choice", options: ["online", "offline"] },
    { key: "writecache", label: "Tell clients of a write cache", kind: "flag" },
    READONLY,
    NODESTROY,
  ],
  filesystem: [
    RECORDSIZE,
    LOGBIAS,
    COMPRESSION,
    SYNC,
    QUOTA,
    RESERVATION,
    { key: "atime", label: "Record access times", kind: "flag" },
    READONLY,
    NODESTROY,
  ],
};
