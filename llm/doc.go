// Package llm calls remote models: language models, which write the next message of a conversation; embedding models,
// which compute vectors of texts; and reranking models, which compute scores for how well a text answers a question.
//
// Texts and the key are sent only to the configured address. Redirects are not followed. A proxy of the environment is
// used only for https requests. A response is either accepted as a whole or rejected. An answer of a language model must
// have its end. Vectors must be one for each text, in order, of equal length, with finite numbers.
//
// Errors, and so logs, contain no key and no text. Errors of language models contain at most a short part of the
// provider's message, without what it repeats of the conversation; other errors contain no free text of a provider. The
// caller's context limits the time; no retry happens after it has ended.
package llm
