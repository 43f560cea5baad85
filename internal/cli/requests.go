package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/spf13/cobra"
)

// ownFlag is the name of the flag that makes a command start servers itself, even if a hub runs.
const ownFlag = "own"

// addOwnFlag adds the flag --own to a command.
func addOwnFlag(cmd *cobra.Command, own *bool) {
	cmd.Flags().BoolVar(own, ownFlag, false, "start servers in a process of its own, also while a hub runs")
}

// A requester carries out requests of the command line, either at the hub or in a gateway of this process.
type requester struct {
	a *app
	g *gateway.Gateway // nil for the hub
	// bar shows the progress of a tool as a bar.
	bar bool
}

// withRequests calls work with a requester for the hub. If no hub runs, or the hub is too old, work returns
// hub.ErrNoHub. Then withRequests calls work again, with a requester for a gateway of this process. If own is set, only
// that second call is made. Because work may be called twice, its first request must come before it prints output or
// reads input.
func (a *app) withRequests(ctx context.Context, own bool, work func(context.Context, requester) error) error {
	if !own {
		if err := work(ctx, requester{a: a}); !errors.Is(err, hub.ErrNoHub) {
			return err
		}
	}
	return a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		return work(ctx, requester{a: a, g: g})
	})
}

// do carries out a request and returns its result. While the request waits, do shows the reason. The error is
// hub.ErrNoHub if the requester is for the hub and no hub can be used. It is errInterruptedAtQuestion if the user
// pressed Ctrl-C when asked for an approval.
func (r requester) do(ctx context.Context, method string, params any) (json.RawMessage, error) {
	request, err := command.NewRequest(method, params)
	if err != nil {
		return nil, err
	}
	ctx, show := r.newWaitDisplay(ctx)
	defer show.close()
	var result json.RawMessage
	if r.g == nil {
		result, err = hub.Call(ctx, r.a.hubOptions(), request, show.event)
	} else {
		result, err = command.Run(ctx, r.g, r.a.Dir, request, show.event)
	}
	if err != nil && errors.Is(context.Cause(ctx), errInterruptedAtQuestion) {
		return nil, errInterruptedAtQuestion
	}
	return result, err
}

// answerRequest carries out a request and decodes its result.
func answerRequest[R any](ctx context.Context, r requester, method string, params any) (result R, err error) {
	raw, err := r.do(ctx, method, params)
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	return result, err
}

// answerApproval allows a waiting call once, or denies it.
func (r requester) answerApproval(ctx context.Context, id string, allow bool) error {
	if r.g == nil {
		return hub.Approve(ctx, r.a.hubOptions(), hub.ApprovalAnswer{ID: id, Allow: allow})
	}
	return r.a.adminService().AnswerApproval(ctx, id, allow, admin.GrantScope{}, "")
}
