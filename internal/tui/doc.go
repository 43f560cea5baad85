// Package tui is the terminal of an agent's session.
//
// [Run] reads prompts of a person, runs them in an [agent.Session], and shows what happens. Finished blocks of text and
// finished calls are printed above the frame, where the terminal keeps them; only the unfinished part is drawn again.
// So the cost of a frame does not depend on the length of the conversation.
//
// Text of models, tools and servers is made safe with package safetext before it is shown. Questions of servers have a
// header of our own that names the server. The package makes no decisions of its own: it passes a person's answers on.
//
// With [Options.Plain], Run writes lines only, for screen readers and for terminals without cursor movement.
package tui
