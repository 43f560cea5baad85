package workspace

import (
	"cmp"
	"fmt"
	"slices"
)

// An Origin says who wrote the content of a revision. It never changes: other content is another revision.
type Origin string

// The origins: a person of the workspace, an import of files, an agent or a script, and a client that reports what it
// has seen elsewhere.
const (
	Authored      Origin = "authored"
	Imported      Origin = "imported"
	AgentProduced Origin = "agent-produced"
	Observed      Origin = "observed"
)

// Valid reports whether o is one of the four origins.
func (o Origin) Valid() bool {
	return slices.Contains([]Origin{Authored, Imported, AgentProduced, Observed}, o)
}

// A Lifecycle says how far content has been accepted.
type Lifecycle string

// The lifecycles: not proposed yet, proposed to the people of the workspace, accepted by one of them, and no longer
// valid. Only a person makes content canonical.
const (
	Draft     Lifecycle = "draft"
	Candidate Lifecycle = "candidate"
	Canonical Lifecycle = "canonical"
	Retired   Lifecycle = "retired"
)

// Valid reports whether l is one of the four lifecycles.
func (l Lifecycle) Valid() bool {
	return slices.Contains([]Lifecycle{Draft, Candidate, Canonical, Retired}, l)
}

// A Reference is a source outside of the workspace: a file, a web page, or a result of a server. It is kept beside the
// derivation links, which stay inside of the workspace.
type Reference struct {
	// Kind is "file", "page" or "result". It is "more" for what a run had read before and was not noted; then Name says
	// how many sources these are.
	Kind string `json:"kind"`
	// Name is the path, the URL, or the name of the tool, prompt or resource.
	Name string `json:"name"`
	// Server is the server that returned a result; empty for other kinds.
	Server string `json:"server,omitempty"`
	// Digest is the SHA-256 of the content in hexadecimal digits, and Call the ID of the audit record of the call that
	// read it; both are empty if they are not known.
	Digest string `json:"digest,omitempty"`
	Call   string `json:"call,omitempty"`
}

// importedOrigin returns the origin of what an actor imports. It is Imported, or the less trusted origin that the
// client declared for which the import runs.
func importedOrigin(a Actor) (Origin, error) {
	if a.Declared != "" && !a.Declared.Valid() {
		return "", refuse(Invalid, fmt.Sprintf("the origin %q does not exist", a.Declared))
	}
	return JoinOrigins(Imported, cmp.Or(a.Declared, Imported)), nil
}

// defaultOrigin returns the origin of what an actor writes. An outside client declares its origin; the other kinds have
// a fixed one.
func defaultOrigin(a Actor) (Origin, error) {
	switch a.Kind {
	case AuthorActor:
		return Authored, nil
	case AgentActor:
		return AgentProduced, nil
	case ImportActor:
		return importedOrigin(a)
	case ClientActor:
		return declaredOrigin(a)
	}
	return "", refuse(Forbidden, "the caller is not known")
}

// declaredOrigin returns the origin that a client declared. Without a declaration it is AgentProduced. Authored needs
// the right to write as an author.
func declaredOrigin(a Actor) (Origin, error) {
	switch {
	case a.Declared == "":
		return AgentProduced, nil
	case !a.Declared.Valid():
		return "", refuse(Invalid, fmt.Sprintf("the origin %q does not exist", a.Declared))
	case a.Declared == Authored && !a.May(Author):
		return "", refuse(Forbidden, "only a client with the scope "+string(Author)+" may write as an author")
	}
	return a.Declared, nil
}

// chooseLifecycle returns the lifecycle of what an actor writes. asked is what the call asks for; empty means the
// default.
func chooseLifecycle(a Actor, origin Origin, asked Lifecycle) (Lifecycle, error) {
	allowed := allowedLifecycles(a, origin)
	switch {
	case asked == "":
		return allowed[0], nil
	case !asked.Valid():
		return "", refuse(Invalid, fmt.Sprintf("the lifecycle %q does not exist", asked))
	case asked == Retired:
		return "", refuse(Invalid, "content is retired by an operation of its own")
	case !slices.Contains(allowed, asked):
		return "", refuse(Forbidden, fmt.Sprintf("content with the origin %s from this caller cannot be %s; it can be %s",
			origin, asked, allowed[0]))
	}
	return asked, nil
}

// allowedLifecycles returns the lifecycles in which an actor may write content, the default first.
func allowedLifecycles(a Actor, origin Origin) []Lifecycle {
	switch {
	case origin == Imported, origin == Observed:
		return []Lifecycle{Draft}
	case a.Script:
		return []Lifecycle{Candidate, Draft} // a person accepts what a script wrote, also the script of a person
	case origin == Authored && a.Kind == AuthorActor:
		return []Lifecycle{Canonical, Candidate, Draft}
	case origin == Authored:
		return []Lifecycle{Candidate, Canonical, Draft}
	}
	return []Lifecycle{Candidate, Draft}
}
