package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

// A askCommands is where a person answers. Every field is needed.
type askCommands struct {
	// In is where a person types; Out is for what was asked for, Err for everything else.
	In       io.Reader
	Out, Err io.Writer
	// OpenIfExists opens the store, nil where there is none yet; Make makes it then.
	OpenIfExists, OpenOrCreate func(ctx context.Context) (*store.DB, error)
	// AdminRecorder has on record what a person decides.
	AdminRecorder gateway.AdminRecorder
}

// command is "ask", with the commands below it. Words after it are for the caller to refuse.
func (d askCommands) command() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "ask",
		Short: "Answer calls that wait for your approval",
		Long: `Show the calls that wait for your approval. A call waits where a rule says so; who called
is told that somebody is asked, and can not answer.

With --watch they are shown as they come, and you answer each with y or n.`,
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
	cmd.Flags().BoolVar(&watch, "watch", false, "show each call as it comes, and ask for a yes or a no")
	cmd.AddCommand(d.showCommand(), d.allowCommand(), d.denyCommand(), d.grantsCommand(), d.revokeCommand())
	return cmd
}

// pendingCall is a call that waits, as --json shows it.
type pendingCall struct {
	ID      string                  `json:"id"`
	Created time.Time               `json:"created"`
	Until   time.Time               `json:"until"`
	Call    gateway.ApprovalDetails `json:"call"`
}

func decodePendingCall(a store.PendingApproval) (pendingCall, error) {
	p := pendingCall{ID: a.ID, Created: a.Created, Until: a.Until}
	if err := json.Unmarshal(a.Shown, &p.Call); err != nil {
		return p, fmt.Errorf("read the call %s: what the store has of it is damaged", a.ID)
	}
	return p, nil
}

// withStore opens the store and hands it over; where there is none, nothing waits.
func (d askCommands) withStore(ctx context.Context, work func(db *store.DB) error) error {
	db, err := d.OpenIfExists(ctx)
	if err != nil {
		return err
	}
	if db == nil {
		return work(nil)
	}
	return errors.Join(work(db), db.Close())
}

func (d askCommands) listPendingCalls(ctx context.Context, asJSON bool) error {
	return d.withStore(ctx, func(db *store.DB) error {
		var all []pendingCall
		if db != nil {
			asks, err := db.PendingApprovals(ctx)
			if err != nil {
				return err
			}
			for _, a := range asks {
				p, err := decodePendingCall(a)
				if err != nil {
					return err
				}
				all = append(all, p)
			}
		}
		return listPrinter[pendingCall]{
			Header: "ID\tCALLER\tCALLS\tWITH\tWHY\tLEFT", EmptyText: "Nothing waits for your approval.",
			Columns: func(p pendingCall) string {
				return safetext.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", p.ID, truncateEscaped(p.Call.Caller, 20),
					truncateEscaped(p.Call.Card, 40),
					formatJSONLine(p.Call.Arguments, 40), truncateEscaped(approvalReason(p.Call), 40),
					formatTimeLeft(p.Until))
			},
		}.print(d.Out, d.Err, all, asJSON)
	})
}

// formatTimeLeft says how long there is for an answer.
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
		Short: "Show a call that waits: who calls what, with all its arguments",
		Long: `Show a call that waits: who calls what, with all its arguments. Characters that can not be
seen, or that would do something to your terminal, are shown as \u and their number. What
looks like a secret is left out, and its length shown.`,
		Args: exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withStore(cmd.Context(), func(db *store.DB) error {
				_, p, err := findPendingCall(cmd.Context(), db, args[0])
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

// findPendingCall finds a call that waits.
func findPendingCall(ctx context.Context, db *store.DB, id string) (store.PendingApproval, pendingCall, error) {
	if db != nil {
		all, err := db.PendingApprovals(ctx)
		if err != nil {
			return store.PendingApproval{}, pendingCall{}, err
		}
		for _, a := range all {
			if a.ID == id {
				p, err := decodePendingCall(a)
				return a, p, err
			}
		}
	}
	return store.PendingApproval{}, pendingCall{},
		fmt.Errorf("no call %s waits: it was answered, or is over (drawbridge ask lists what waits)",
			truncateEscaped(id, 20))
}

func (d askCommands) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deny ID",
		Short: "Refuse a call that waits",
		Long:  "Refuse a call that waits. While it would have waited, the same call is refused without asking you again.",
		Args:  exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withStore(cmd.Context(), func(db *store.DB) error {
				_, p, err := findPendingCall(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return d.answerCall(cmd.Context(), db, p, store.AnswerDenied, nil, 0)
			})
		},
	}
}

// answerCall records what the person said, and says so.
func (d askCommands) answerCall(ctx context.Context, db *store.DB, p pendingCall, a store.ApprovalAnswer,
	grant *store.Grant, lasts time.Duration) error {
	if err := d.recordAnswer(ctx, db, p, a, grant, lasts); err != nil {
		return err
	}
	said := map[store.ApprovalAnswer]string{store.AnswerAllowed: "Allowed", store.AnswerDenied: "Denied"}[a]
	_, err := safetext.Fprintf(d.Out, "%s %s %s\n", said, p.ID, truncateEscaped(p.Call.Card, 100))
	return err
}

// recordAnswer records what the person said, and that they did.
func (d askCommands) recordAnswer(ctx context.Context, db *store.DB, p pendingCall, a store.ApprovalAnswer,
	grant *store.Grant, lasts time.Duration) error {
	act := gateway.AdminAction{Command: "ask " + string(a), Server: drawbridge.ServerID(p.Call.Server),
		Subject: p.Call.Card, Detail: p.ID}
	switch {
	case grant == nil:
	case lasts == 0:
		act.Detail += ", from now on"
	default:
		act.Detail += ", for " + lasts.String()
	}
	return d.AdminRecorder.Run(act, func() error {
		return db.AnswerPendingApproval(ctx, p.ID, a, gateway.CurrentUser()+", drawbridge "+act.Command, grant, lasts)
	})
}

// watchInterval is how often it is looked for new calls.
const watchInterval = 300 * time.Millisecond

// watchPendingCalls shows each call as it comes, until ctx ends.
func (d askCommands) watchPendingCalls(ctx context.Context) error {
	if !term.IsInteractive(d.In, d.Err) {
		return admin.UserError("ask --watch needs a terminal (drawbridge ask lists what waits)")
	}
	db, err := d.OpenOrCreate(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Fprintln(d.Err, "Calls that wait for your approval are shown here. Ctrl-C ends it.")
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	keys := term.NewKeyReader(d.In)
	for seen := map[string]bool{}; ; {
		all, err := db.PendingApprovals(ctx)
		if err != nil {
			return err
		}
		for _, a := range all {
			if seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			switch err := d.promptForAnswer(ctx, db, keys, a); {
			case ctx.Err() != nil, errors.Is(err, io.EOF): // Ctrl-C, which a question reads as a key
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

// errNoLongerPending ends the question about a call that does not wait any more.
var errNoLongerPending = errors.New("the call waits no longer")

// awaitCallAnswered waits until a call is answered or over, and returns errNoLongerPending; or until ctx ends.
func awaitCallAnswered(ctx context.Context, db *store.DB, id string) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		all, err := db.PendingApprovals(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(a store.PendingApproval) bool { return a.ID == id }) {
			return errNoLongerPending
		}
	}
}

// promptForAnswer shows a call and asks for the answer, until it is over. None leaves it waiting.
func (d askCommands) promptForAnswer(ctx context.Context, db *store.DB, keys *term.KeyReader,
	a store.PendingApproval) error {
	p, err := decodePendingCall(a)
	if err != nil {
		safetext.Fprintln(d.Err, err)
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
	looking.Go(func() { end(awaitCallAnswered(asking, db, a.ID)) })
	for {
		said, err := person.Ask("Allow this call, once? y is yes, n is no, nothing leaves it waiting: ")
		if err != nil {
			person.Close()
			fmt.Fprintln(d.Err)
			if asking.Err() != nil {
				err = context.Cause(asking)
			}
			if errors.Is(err, errNoLongerPending) {
				fmt.Fprintln(d.Err, "It waits no longer: it was answered elsewhere, or is over.")
				return nil
			}
			return err
		}
		answer := store.AnswerAllowed
		switch said {
		case "":
			return nil
		case "n", "no":
			answer = store.AnswerDenied
		case "y", "yes":
		default:
			continue
		}
		switch err := d.recordAnswer(ctx, db, p, answer, nil, 0); {
		case err != nil:
			person.Say(err.Error())
		case answer == store.AnswerAllowed:
			person.Say("Allowed.")
		default:
			person.Say("Denied.")
		}
		return nil
	}
}
