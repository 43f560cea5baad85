// Package llm calls remote models: embedding models, which compute vectors of texts, and reranking models, which
// compute scores for how well a text answers a question.
//
// Texts and the key are sent only to the configured address. Redirects are not followed. A proxy of the environment is
// used only for https requests. A response is either accepted as a whole or rejected: it must have one vector for each
// text, in order, of equal length, with finite numbers. Errors, and so logs, contain no key, no text and no free text
// of a provider. The caller's context limits the time; no retry happens after it has ended.
package llm
