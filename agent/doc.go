// Package agent runs conversations between a person, a language model and tools.
//
// A [Session] holds one conversation. [Session.Run] sends a prompt to the model, calls the tools that the model asks
// for, and repeats this until the model ends. What happens is reported as [Event] values, while it happens. Every entry
// of the conversation is appended to a [History] before the next step is taken, so that a conversation can be resumed
// after a crash.
//
// The package knows only the nouns of the root package and three interfaces: [Model] asks a language model, [Tools]
// calls tools, and [History] keeps entries. Package gateway implements Tools over everything that Drawbridge mounts.
// Package llm implements Model.
package agent
