package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// askCommands implements the command "ask" and its subcommands. Every field is required.
type askCommands struct {
	// In is the person's input. Out receives results, and Err receives all other output.
	In       io.Reader
	Out, Err io.Writer
	// Admin returns the service that stores the waiting calls.
	Admin func() *admin.Service
}

// command returns the command "ask" with its subcommands. The caller must set Args of the result.
func (d askCommands) command() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "ask",
		Short: "Answer calls that wait for your approval",
		Long: `Show the calls that wait for your approval. A rule decides which calls wait. The caller is
told that a person is asked, and cannot answer itself.

With --watch, calls are shown as they arrive, and you answer each with y or n.`,
		Example: `  drawbridge ask --watch
  drawbridge ask show k3f9qzab
  drawbridge ask allow k3f9qzab
  drawbridge ask deny k3f9qzab`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return d.watchPendingCalls(cmd.Context())
			}
			return d.listPendingCalls(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "show each call as it arrives and ask for an answer")
	cmd.AddCommand(d.showCommand(), d.allowCommand(), d.denyCommand(), d.grantsCommand(), d.revokeCommand())
	return cmd
}

// withApprovals opens the queue of waiting calls, calls work with it, and closes it.
func (d askCommands) withApprovals(ctx context.Context, work func(*admin.Approvals) error) error {
	queue, err := d.Admin().OpenApprovals(ctx, false)
	if err != nil {
		return err
	}
	return errors.Join(work(queue), queue.Close())
}

func (d askCommands) listPendingCalls(ctx context.Context, asJSON bool) error {
	return d.withApprovals(ctx, func(queue *admin.Approvals) error {
		all, err := queue.Pending(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Damage != nil {
				return p.Damage
			}
		}
		return listPrinter[admin.PendingCall]{
			Header: "ID\tCALLER\tCALLS\tWITH\tWHY\tLEFT", EmptyText: "No calls wait for your approval.",
			Columns: func(p admin.PendingCall) string {
				return safetext.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", p.ID, truncateEscaped(p.Call.Caller, 40),
					truncateEscaped(p.Call.Card, 60),
					formatJSONLine(p.Call.Arguments, 200), truncateEscaped(approvalReason(p.Call), 200),
					formatTimeLeft(p.Until))
			},
		}.print(d.Out, d.Err, all, asJSON)
	})
}

// formatTimeLeft returns the time left for an answer, to the second.
func formatTimeLeft(until time.Time) string { return time.Until(until).Round(time.Second).String() }

func approvalReason(c gateway.ApprovalDetails) string {
	switch {
	case c.Reason == "":
		return c.Rule
	case c.Rule == "":
		return c.Reason
	}
	return c.Reason + " (" + c.Rule + ")"
}

func (d askCommands) showCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a waiting call with its caller and all arguments",
		Long: `Show a waiting call with its caller and all arguments. Invisible characters, and those that
would control your terminal, are shown as \u escapes. Values that look like secrets are
replaced by their length.`,
		Args: exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withApprovals(cmd.Context(), func(queue *admin.Approvals) error {
				p, err := queue.Find(cmd.Context(), args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					return PrintJSON(d.Out, p)
				}
				_, err = fmt.Fprint(d.Out, formatPendingCall(p))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d askCommands) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deny ID",
		Short: "Refuse a waiting call",
		Long:  "Refuse a waiting call. Until its time runs out, the same call is refused without asking you again.",
		Args:  exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withApprovals(cmd.Context(), func(queue *admin.Approvals) error {
				p, err := queue.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if err := queue.Deny(cmd.Context(), p); err != nil {
					return err
				}
				return d.printAnswer("Denied", p)
			})
		},
	}
}

// printAnswer prints which answer a call received.
func (d askCommands) printAnswer(answer string, p admin.PendingCall) error {
	_, err := safetext.Fprintf(d.Out, "%s %s %s\n", answer, p.ID, truncateEscaped(p.Call.Card, 100))
	return err
}

// watchInterval is the interval of checks for new calls.
const watchInterval = 300 * time.Millisecond

// watchPendingCalls shows each waiting call as it arrives and asks for an answer. It returns when ctx ends or the
// person presses Ctrl-C.
func (d askCommands) watchPendingCalls(ctx context.Context) error {
	if !IsInteractive(d.In, d.Err) {
		return admin.UserError("ask --watch needs a terminal (drawbridge ask lists waiting calls)")
	}
	queue, err := d.Admin().OpenApprovals(ctx, true)
	if err != nil {
		return err
	}
	defer queue.Close()
	fmt.Fprintln(d.Err, "Calls that wait for your approval appear here. Press Ctrl-C to stop.")
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	keys := NewKeyReader(d.In)
	for seen := map[string]bool{}; ; {
		all, err := queue.Pending(ctx)
		if err != nil {
			return err
		}
		for _, a := range all {
			if seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			switch err := d.promptForAnswer(ctx, queue, keys, a); {
			case ctx.Err() != nil, errors.Is(err, io.EOF): // a question returns io.EOF for Ctrl-C
				return nil
			case err != nil:
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// errNoLongerPending ends the question about a call that no longer waits, because it was answered elsewhere or has
// ended. It is the cancellation cause of the question's context.
var errNoLongerPending = errors.New("the call no longer waits")

// awaitCallAnswered waits until a call no longer waits for approval, and then returns errNoLongerPending. If ctx ends
// first, it returns the error of ctx.
func awaitCallAnswered(ctx context.Context, queue *admin.Approvals, id string) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		all, err := queue.Pending(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(a admin.PendingCall) bool { return a.ID == id }) {
			return errNoLongerPending
		}
	}
}

// promptForAnswer shows a waiting call, asks for an answer, and stores the answer. After an empty answer the call
// continues to wait. If the call is answered elsewhere or ends meanwhile, the question ends without an answer.
func (d askCommands) promptForAnswer(ctx context.Context, queue *admin.Approvals, keys *KeyReader,
	p admin.PendingCall) error {
	if p.Damage != nil {
		safetext.Fprintln(d.Err, p.Damage)
		return nil
	}
	fmt.Fprintf(d.Err, "\n%s\n", formatPendingCall(p))
	asking, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer end(nil)
	person, ok := keys.StartDialogue(asking, d.Err)
	if !ok {
		return errors.New("the terminal is gone")
	}
	defer person.Close()
	if err := person.DiscardInput(); err != nil {
		return fmt.Errorf("forget what was typed before the call was shown: %w", err)
	}
	looking.Go(func() { end(awaitCallAnswered(asking, queue, p.ID)) })
	for {
		said, err := person.Ask("Allow this call once? [y = allow, n = deny, Enter = leave it waiting] ")
		if err != nil {
			person.Close()
			fmt.Fprintln(d.Err)
			if asking.Err() != nil {
				err = context.Cause(asking)
			}
			if errors.Is(err, errNoLongerPending) {
				fmt.Fprintln(d.Err, "The call no longer waits: it was answered elsewhere or has ended.")
				return nil
			}
			return err
		}
		allow := true
		switch said {
		case "":
			return nil
		case "n", "no":
			allow = false
		case "y", "yes":
		default:
			continue
		}
		text := "Denied."
		if allow {
			text, err = "Allowed.", queue.Allow(ctx, p, admin.GrantScope{})
		} else {
			err = queue.Deny(ctx, p)
		}
		if err != nil {
			text = err.Error()
		}
		person.Say(text)
		return nil
	}
}
