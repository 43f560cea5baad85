//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	product "github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// failEach is how many calls of a filled audit there are for one that fails.
const failEach = 10_000

// fill is a process that fills the audit of a store: it makes calls of a tool of Drawbridge's own, which answers at
// once, as fast as several callers can. One call of many names a tool that does not exist.
func fill(args []string) error {
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := gateway.Open(ctx, gateway.Config{Paths: []string{args[0]}, Store: args[1]})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	const workers = 8
	errs := make([]error, workers)
	var callers sync.WaitGroup
	for worker := range workers {
		callers.Go(func() {
			for n := worker; n < count && errs[worker] == nil; n += workers {
				errs[worker] = fillOne(ctx, g, n%failEach == 0)
			}
		})
	}
	callers.Wait()
	cancel()
	running.Wait()
	return errors.Join(append(errs, g.Close())...)
}

// fillOne makes one call. On a busy machine a call that cannot be recorded in time is refused: it is made again.
func fillOne(ctx context.Context, g *gateway.Gateway, fails bool) (err error) {
	const attempts = 10
	for range attempts {
		if err = fillOnce(ctx, g, fails); err == nil {
			return nil
		}
	}
	return err
}

func fillOnce(ctx context.Context, g *gateway.Gateway, fails bool) error {
	params := `{"name":"todo_read","arguments":{}}`
	if fails {
		params = `{"name":"no_such_tool","arguments":{}}`
	}
	result, err := g.Deck().Call(ctx, product.Call{Caller: g.Owner(), Params: []byte(params)})
	if failed := err != nil || result.IsError(); failed != fails {
		return fmt.Errorf("%s: %s, %v", params, result.Raw, err)
	}
	return nil
}
