package ear

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Refusal is something that a server does not let be watched, and why.
type Refusal struct {
	drawbridge.UnwatchedError
	// Final says that another attempt is of no use.
	Final bool
}

// Refusals are what a server refused of what is wanted.
type Refusals []Refusal

// What gives all that is refused.
func (r Refusals) What() (all drawbridge.Watched) {
	for _, one := range r {
		all.URIs, all.Tasks = append(all.URIs, one.What.URIs...), append(all.Tasks, one.What.Tasks...)
	}
	return all
}

// Of gives the Refusals of some of w, as far as they are.
func (r Refusals) Of(w drawbridge.Watched) (out Refusals) {
	for _, one := range r {
		if one.What = w.Within(one.What); !one.What.None() {
			out = append(out, one)
		}
	}
	return out
}

// Final gives what another attempt is of no use for.
func (r Refusals) Final() (out Refusals) {
	for _, one := range r {
		if one.Final {
			out = append(out, one)
		}
	}
	return out
}

// refusal is what a request for some of what is watched came to that ended with err. It is final where the server itself
// said no.
func refusal(what drawbridge.Watched, err error) Refusal {
	a := answerOf(err)
	return Refusal{drawbridge.UnwatchedError{What: what, Err: err}, a.said || !a.mayPass}
}

// An answer is what to make of the error that a request ended with.
type answer struct {
	// said is for what the server itself said, mayPass for what may be otherwise the next time, never for a server that
	// does not know the request.
	said, mayPass, never bool
}

func answerOf(err error) answer {
	reply, said := errors.AsType[*link.ReplyError](err)
	return answer{
		said: said, mayPass: link.CodeOf(err).Retryable(), never: said && wire.ErrorCode(reply.Object) == wire.CodeMethodNotFound,
	}
}
