// Package llm calls remote models: embedding models, which compute vectors of texts, and reranking models, which score
// how well a text answers a question.
//
// It guarantees that texts and the key go only to the configured address: redirects are not followed, and a proxy of
// the environment is used only if TLS hides both from it. A response is accepted as a whole or rejected: one vector for
// each text, in order, of equal length, with finite numbers. Errors, and so logs, contain no key, no text and no free
// text of a provider. The caller's context limits the time; no retry happens after it.
package llm
