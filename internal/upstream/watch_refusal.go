package upstream

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A watchRefusal is something that a server does not let be watched, and why.
type watchRefusal struct {
	drawbridge.UnwatchedError
	// Final says that another attempt is of no use.
	Final bool
}

// watchRefusals are what a server refused of what is wanted.
type watchRefusals []watchRefusal

// watchSet gives all that is refused.
func (r watchRefusals) watchSet() (all drawbridge.WatchSet) {
	for _, one := range r {
		all.URIs, all.Tasks = append(all.URIs, one.Unwatched.URIs...), append(all.Tasks, one.Unwatched.Tasks...)
	}
	return all
}

// within gives the Refusals of some of w, as far as they are.
func (r watchRefusals) within(w drawbridge.WatchSet) (out watchRefusals) {
	for _, one := range r {
		if one.Unwatched = w.Intersect(one.Unwatched); !one.Unwatched.IsEmpty() {
			out = append(out, one)
		}
	}
	return out
}

// finalOnes gives what another attempt is of no use for.
func (r watchRefusals) finalOnes() (out watchRefusals) {
	for _, one := range r {
		if one.Final {
			out = append(out, one)
		}
	}
	return out
}

// newWatchRefusal is what a request for some of what is watched came to that ended with err. It is final where the
// server itself said no.
func newWatchRefusal(what drawbridge.WatchSet, err error) watchRefusal {
	a := classifyListenError(err)
	return watchRefusal{drawbridge.UnwatchedError{Unwatched: what, Err: err}, a.fromServer || !a.retryable}
}

// An listenError is what to make of the error that a request ended with.
type listenError struct {
	// fromServer is for what the server itself said, mayPass for what may be otherwise the next time, never for a
	// server that does not know the request.
	fromServer, retryable, unsupported bool
}

func classifyListenError(err error) listenError {
	reply, said := errors.AsType[*transport.ResponseError](err)
	return listenError{
		fromServer: said, retryable: transport.FaultCodeOf(err).Retryable(), unsupported: said &&
			mcp.ErrorCode(reply.Object) == mcp.CodeMethodNotFound,
	}
}
