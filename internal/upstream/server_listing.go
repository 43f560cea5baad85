package upstream

import (
	"encoding/json"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A serverListing stores the last known listing of a server. Its methods may be called from several goroutines. They do
// not acquire any other lock.
type serverListing struct {
	// budget is used only by the primary loop, which lists the server.
	budget relistBudget

	mu      sync.Mutex
	last    *drawbridge.Listing // nil before the first listing; its content is not changed
	thisRun bool                // last was made by this process
	tools   toolTraits          // the traits of the tools in last
	leftOut []string            // describes the items that are not shown to clients
}

// newServerListing returns a serverListing with a listing that an earlier process made. headers is set if some
// arguments of tools are also sent in HTTP headers.
func newServerListing(known *drawbridge.Listing, headers bool) serverListing {
	return serverListing{last: known, tools: parseToolTraits(known.Tools, headers)}
}

// set replaces the listing by a listing of this process, with the traits of its tools and descriptions of the items
// that were left out.
func (l *serverListing) set(fresh *drawbridge.Listing, tools toolTraits, leftOut []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.thisRun, l.tools, l.leftOut = fresh, true, tools, leftOut
}

// get returns the last listing, or nil, and reports whether this process made it.
func (l *serverListing) get() (last *drawbridge.Listing, thisRun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.thisRun
}

// notes returns descriptions of the items that were left out.
func (l *serverListing) notes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftOut
}

// capabilities returns the last known capabilities of the server.
func (l *serverListing) capabilities() json.RawMessage {
	if last, _ := l.get(); last != nil {
		return last.Capabilities
	}
	return nil
}

// isRepeatable reports whether a tool declares that repeating a call is harmless.
func (l *serverListing) isRepeatable(tool string) bool {
	last, _ := l.get()
	return last != nil && isToolRepeatable(last.Tools, tool)
}

// headerParams returns the arguments of a tool that are also sent in headers.
func (l *serverListing) headerParams(tool string) []mcp.HeaderParam {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.HeaderParams[tool]
}

// taskOnly returns the tools that must be called as tasks. The map must not be changed.
func (l *serverListing) taskOnly() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools.TaskOnly
}
