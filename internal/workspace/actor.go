package workspace

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Capability is a right in a workspace. Its text is the scope that a caller holds for it.
type Capability string

// The capabilities. Read covers pages, their history and their links. Propose covers writes that a person accepts
// later. Author covers writes as a person of the workspace, and promotion. Import covers imports of files. Remember
// covers memory, Manage covers the capabilities of others, and Scrub covers the removal of text from all history.
const (
	Read     Capability = "workspace:read"
	Propose  Capability = "workspace:propose"
	Author   Capability = "workspace:author"
	Import   Capability = "workspace:import"
	Remember Capability = "workspace:memory"
	Manage   Capability = "workspace:manage"
	Scrub    Capability = "workspace:scrub"
)

// Capabilities returns all capabilities.
func Capabilities() []Capability {
	return []Capability{Read, Propose, Author, Import, Remember, Manage, Scrub}
}

// An ActorKind is the kind of caller that acts in a workspace.
type ActorKind uint8

// The kinds of actor. The zero value may do nothing.
const (
	UnknownActor ActorKind = iota
	AuthorActor            // a person of the workspace
	AgentActor             // an agent of Drawbridge, for a person
	ClientActor            // an outside client
	ImportActor            // an import that a person started
)

// String returns the kind in lower case.
func (k ActorKind) String() string {
	names := [...]string{"unknown", "author", "agent", "client", "import"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[UnknownActor]
}

// An Actor is who acts, and what it may do. It is made from an authenticated caller, never from arguments of a call.
type Actor struct {
	Kind ActorKind
	// Script reports that a script of the sandbox acts, under the rights of the actor that started it.
	Script bool
	// Principal is the name of the person or client.
	Principal string
	// Thread and Run identify the work that a write belongs to. Each write of an agent or a script has a run.
	Thread, Run string
	// Declared is the origin that a client declares for its content, also for what it imports; other kinds have none.
	Declared Origin
	// Capabilities are the rights of the actor. An empty list grants nothing.
	Capabilities []Capability
}

func (a Actor) known() bool { return a.Kind > UnknownActor && a.Kind <= ImportActor }

// May reports whether the actor holds a capability. A capability that ends in "*" covers all with its prefix.
func (a Actor) May(c Capability) bool {
	if !a.known() {
		return false
	}
	for _, held := range a.Capabilities {
		prefix, all := strings.CutSuffix(string(held), "*")
		if held == c || all && strings.HasPrefix(string(c), prefix) {
			return true
		}
	}
	return false
}

// Require returns an error if the actor does not hold a capability.
func (a Actor) Require(c Capability) error {
	if !a.known() {
		return refuse(Forbidden, "the caller is not known")
	}
	if !a.May(c) {
		return refuse(Forbidden, fmt.Sprintf("the caller does not hold the scope %s", c))
	}
	return nil
}

// A Code classifies an error of the package.
type Code string

// The codes: the request is wrong, the actor lacks a right, the entity does not exist, and the content has changed
// since it was read.
const (
	Invalid   Code = "invalid"
	Forbidden Code = "forbidden"
	NotFound  Code = "not_found"
	Conflict  Code = "conflict"
)

// An Error says why a write or a read is refused.
type Error struct {
	Code Code
	// Reason is one clause for a person.
	Reason string
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Fault returns the error as a fault of a step.
func (e *Error) Fault(step string) *drawbridge.Fault {
	code := map[Code]drawbridge.FaultCode{Invalid: drawbridge.InvalidInput, NotFound: drawbridge.NotFound,
		Forbidden: drawbridge.PolicyBlocked, Conflict: drawbridge.InvalidInput}[e.Code]
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: step, Err: e}
}

func refuse(c Code, reason string) error { return &Error{Code: c, Reason: reason} }
