// Package asks has the commands by which a person answers calls that wait for them.
//
// It promises that a person sees all that they decide on: whole arguments, as the server will read them, in which no character
// does anything to the terminal or hides; and that one answer is for one call, unless they say otherwise.
package asks

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
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// A Desk is where a person answers. Every field is needed.
type Desk struct {
	// In is where a person types; Out is for what was asked for, Err for everything else.
	In       io.Reader
	Out, Err io.Writer
	// Open opens the store, nil where there is none yet; Make makes it then.
	Open, Make func(ctx context.Context) (*store.DB, error)
	// Clerk has on record what a person decides.
	Clerk gateway.Clerk
}

// Command is "ask", with the commands below it. Words after it are for the caller to refuse.
func (d Desk) Command() *cobra.Command {
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
				return d.watch(cmd.Context())
			}
			return d.list(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "show each call as it comes, and ask for a yes or a no")
	cmd.AddCommand(d.show(), d.allow(), d.deny(), d.grants(), d.revoke())
	return cmd
}

// pending is a call that waits, as --json shows it.
type pending struct {
	ID      string             `json:"id"`
	Created time.Time          `json:"created"`
	Until   time.Time          `json:"until"`
	Call    gateway.AskDetails `json:"call"`
}

func pendingOf(a store.Ask) (pending, error) {
	p := pending{ID: a.ID, Created: a.Created, Until: a.Until}
	if err := json.Unmarshal(a.Shown, &p.Call); err != nil {
		return p, fmt.Errorf("read the call %s: what the store has of it is damaged", a.ID)
	}
	return p, nil
}

// with opens the store and hands it over; where there is none, nothing waits.
func (d Desk) with(ctx context.Context, work func(db *store.DB) error) error {
	db, err := d.Open(ctx)
	if err != nil {
		return err
	}
	if db == nil {
		return work(nil)
	}
	return errors.Join(work(db), db.Close())
}

func (d Desk) list(ctx context.Context, asJSON bool) error {
	return d.with(ctx, func(db *store.DB) error {
		var all []pending
		if db != nil {
			asks, err := db.Asks(ctx)
			if err != nil {
				return err
			}
			for _, a := range asks {
				p, err := pendingOf(a)
				if err != nil {
					return err
				}
				all = append(all, p)
			}
		}
		return manners.List[pending]{
			Head: "ID\tCALLER\tCALLS\tWITH\tWHY\tLEFT", None: "Nothing waits for your approval.",
			Line: func(p pending) string {
				return safetext.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", p.ID, plain(p.Call.Caller, 20), plain(p.Call.Card, 40),
					line(p.Call.Arguments, 40), plain(why(p.Call), 40), left(p.Until))
			},
		}.Print(d.Out, d.Err, all, asJSON)
	})
}

// left says how long there is for an answer.
func left(until time.Time) string { return time.Until(until).Round(time.Second).String() }

func why(c gateway.AskDetails) string {
	switch {
	case c.Reason == "":
		return c.Rule
	case c.Rule == "":
		return c.Reason
	}
	return c.Reason + " (" + c.Rule + ")"
}

func (d Desk) show() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a call that waits: who calls what, with all its arguments",
		Long: `Show a call that waits: who calls what, with all its arguments. Characters that can not be
seen, or that would do something to your terminal, are shown as \u and their number. What
looks like a secret is left out, and its length shown.`,
		Args: manners.Exactly(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.with(cmd.Context(), func(db *store.DB) error {
				_, p, err := find(cmd.Context(), db, args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					return manners.PrintJSON(d.Out, p)
				}
				_, err = fmt.Fprint(d.Out, page(p))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// find finds a call that waits.
func find(ctx context.Context, db *store.DB, id string) (store.Ask, pending, error) {
	if db != nil {
		all, err := db.Asks(ctx)
		if err != nil {
			return store.Ask{}, pending{}, err
		}
		for _, a := range all {
			if a.ID == id {
				p, err := pendingOf(a)
				return a, p, err
			}
		}
	}
	return store.Ask{}, pending{}, fmt.Errorf("no call %s waits: it was answered, or is over (drawbridge ask lists what waits)", plain(id, 20))
}

func (d Desk) deny() *cobra.Command {
	return &cobra.Command{
		Use:   "deny ID",
		Short: "Refuse a call that waits",
		Long:  "Refuse a call that waits. While it would have waited, the same call is refused without asking you again.",
		Args:  manners.Exactly(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.with(cmd.Context(), func(db *store.DB) error {
				_, p, err := find(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return d.answer(cmd.Context(), db, p, store.Denied, nil, 0)
			})
		},
	}
}

// answer records what the person said, and says so.
func (d Desk) answer(ctx context.Context, db *store.DB, p pending, a store.Answer, grant *store.Grant, lasts time.Duration) error {
	if err := d.decide(ctx, db, p, a, grant, lasts); err != nil {
		return err
	}
	said := map[store.Answer]string{store.Allowed: "Allowed", store.Denied: "Denied"}[a]
	_, err := safetext.Fprintf(d.Out, "%s %s %s\n", said, p.ID, plain(p.Call.Card, 100))
	return err
}

// decide records what the person said, and that they did.
func (d Desk) decide(ctx context.Context, db *store.DB, p pending, a store.Answer, grant *store.Grant, lasts time.Duration) error {
	act := gateway.Act{Command: "ask " + string(a), Server: drawbridge.ServerID(p.Call.Server), On: p.Call.Card, Detail: p.ID}
	switch {
	case grant == nil:
	case lasts == 0:
		act.Detail += ", from now on"
	default:
		act.Detail += ", for " + lasts.String()
	}
	return d.Clerk.Do(act, func() error {
		return db.AnswerAsk(ctx, p.ID, a, gateway.Person()+", drawbridge "+act.Command, grant, lasts)
	})
}

// watchEvery is how often it is looked for new calls.
const watchEvery = 300 * time.Millisecond

// watch shows each call as it comes, until ctx ends.
func (d Desk) watch(ctx context.Context) error {
	if !terminal.Asks(d.In, d.Err) {
		return roster.Mistake("ask --watch needs a terminal (drawbridge ask lists what waits)")
	}
	db, err := d.Make(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Fprintln(d.Err, "Calls that wait for your approval are shown here. Ctrl-C ends it.")
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	keys := terminal.NewKeys(d.In)
	for seen := map[string]bool{}; ; {
		all, err := db.Asks(ctx)
		if err != nil {
			return err
		}
		for _, a := range all {
			if seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			switch err := d.put(ctx, db, keys, a); {
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

// errOver ends the question about a call that does not wait any more.
var errOver = errors.New("the call waits no longer")

// over waits until a call is answered or over, and returns errOver; or until ctx ends.
func over(ctx context.Context, db *store.DB, id string) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		all, err := db.Asks(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(a store.Ask) bool { return a.ID == id }) {
			return errOver
		}
	}
}

// put shows a call and asks for the answer, until it is over. None leaves it waiting.
func (d Desk) put(ctx context.Context, db *store.DB, keys *terminal.Keys, a store.Ask) error {
	p, err := pendingOf(a)
	if err != nil {
		safetext.Fprintln(d.Err, err)
		return nil
	}
	fmt.Fprintf(d.Err, "\n%s\n", page(p))
	asking, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer end(nil)
	person, ok := keys.Begin(asking, d.Err)
	if !ok {
		return errors.New("the terminal is gone")
	}
	defer person.Close()
	if err := person.Forget(); err != nil {
		return fmt.Errorf("forget what was typed before the call was shown: %w", err)
	}
	looking.Go(func() { end(over(asking, db, a.ID)) })
	for {
		said, err := person.Ask("Allow this call, once? y is yes, n is no, nothing leaves it waiting: ")
		if err != nil {
			person.Close()
			fmt.Fprintln(d.Err)
			if asking.Err() != nil {
				err = context.Cause(asking)
			}
			if errors.Is(err, errOver) {
				fmt.Fprintln(d.Err, "It waits no longer: it was answered elsewhere, or is over.")
				return nil
			}
			return err
		}
		answer := store.Allowed
		switch said {
		case "":
			return nil
		case "n", "no":
			answer = store.Denied
		case "y", "yes":
		default:
			continue
		}
		switch err := d.decide(ctx, db, p, answer, nil, 0); {
		case err != nil:
			person.Say(err.Error())
		case answer == store.Allowed:
			person.Say("Allowed.")
		default:
			person.Say("Denied.")
		}
		return nil
	}
}
