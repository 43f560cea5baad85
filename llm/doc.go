// Package llm speaks to models that run elsewhere: those that give texts a place by their meaning, and those that
// judge how well a text answers a question.
//
// It promises that texts and the key go to the address that was configured and nowhere else: no redirect leads to
// another, and a proxy of the environment is used where it sees neither. An answer is taken whole or not at all: as
// many vectors as there were texts, each in its place, all of one length, of finite numbers. No error, and so no log,
// holds a key, a text or what a provider wrote in words of its own. Whoever asks says by their context how long that
// may take; nothing is tried again after it.
package llm
