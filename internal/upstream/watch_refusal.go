package upstream

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A watchRefusal is a part of a watch set that a server refused, with the error.
type watchRefusal struct {
	drawbridge.UnwatchedError
	// Final is set if another attempt is useless.
	Final bool
}

// watchRefusals are all refusals of one watch set.
type watchRefusals []watchRefusal

// watchSet returns all refused items.
func (r watchRefusals) watchSet() (all drawbridge.WatchSet) {
	for _, one := range r {
		all.URIs, all.Tasks = append(all.URIs, one.Unwatched.URIs...), append(all.Tasks, one.Unwatched.Tasks...)
	}
	return all
}

// within returns the refusals restricted to the items in w.
func (r watchRefusals) within(w drawbridge.WatchSet) (out watchRefusals) {
	for _, one := range r {
		if one.Unwatched = w.Intersect(one.Unwatched); !one.Unwatched.IsEmpty() {
			out = append(out, one)
		}
	}
	return out
}

// finalOnes returns the refusals that are final.
func (r watchRefusals) finalOnes() (out watchRefusals) {
	for _, one := range r {
		if one.Final {
			out = append(out, one)
		}
	}
	return out
}

// newWatchRefusal returns the refusal of all items of the watch set what, for a request that ended with err. The
// refusal is final if the server answered with an error, or if err is not retryable.
func newWatchRefusal(what drawbridge.WatchSet, err error) watchRefusal {
	a := classifyListenError(err)
	return watchRefusal{drawbridge.UnwatchedError{Unwatched: what, Err: err}, a.fromServer || !a.retryable}
}

// A listenError classifies the error of a listening request.
type listenError struct {
	// fromServer is set if the server answered with an error. retryable is set if another attempt may succeed.
	// unsupported is set if the server does not know the method.
	fromServer, retryable, unsupported bool
}

func classifyListenError(err error) listenError {
	reply, said := errors.AsType[*transport.ResponseError](err)
	return listenError{
		fromServer: said, retryable: transport.FaultCodeOf(err).Retryable(), unsupported: said &&
			mcp.ErrorCode(reply.Object) == mcp.CodeMethodNotFound,
	}
}
