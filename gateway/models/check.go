package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/index"
)

// checkTime is how long a model may take that is only looked at.
const checkTime = 10 * time.Second

// A Checkup is what came of asking one model something small.
type Checkup struct {
	// About is what is asked: "the embedding model".
	About string
	// Answer says for people how it answered; empty where it did not.
	Answer string
	// Slow says that it answered later than a question waits, and what to do; empty where it did not.
	Slow string
	// Skipped says that it was not asked, since a command has a part in its key.
	Skipped bool
	// Err is what went wrong.
	Err error
}

// Check asks the models that the settings name, each one small thing; with commands also those whose keys come from commands.
func Check(ctx context.Context, o Options, commands bool) (all []Checkup) {
	o.Keeper = nil
	s := o.Settings
	for _, one := range []struct {
		about string
		set   bool
		key   config.Key
		look  func(context.Context, *Checkup) error
	}{
		{"the embedding model", !isZero(s.Embedding), s.Embedding.Key, o.checkEmbedding},
		{"the model that judges", !noRerank(s.Rerank), s.Rerank.Key, o.checkRerank},
	} {
		c := Checkup{About: one.about}
		switch {
		case !one.set:
			continue
		case runs(one.key) && !commands:
			c.Skipped = true
		default:
			within, cancel := context.WithTimeout(ctx, checkTime)
			c.Err = one.look(within, &c)
			cancel()
		}
		all = append(all, c)
	}
	return all
}

func runs(k config.Key) bool {
	for _, p := range k.Parts {
		if p.Kind == config.FromCommand {
			return true
		}
	}
	return false
}

func (o Options) checkEmbedding(ctx context.Context, c *Checkup) error {
	e, end, err := o.embedder()
	if err != nil {
		return wrong(embeddingTable, err)
	}
	defer end()
	if _, err := e.Embed(ctx, index.Asked, []string{"hello"}); err != nil { // finds the key, and opens the connection
		return err
	}
	began := time.Now()
	vectors, err := e.Embed(ctx, index.Asked, []string{"read a file"})
	if err != nil {
		return err
	}
	took, most := time.Since(began), cmp.Or(o.Settings.Embedding.Deadline, index.DefaultDeadline)
	c.Answer = fmt.Sprintf("%s, and answers with %d numbers", e.Model(), len(vectors[0]))
	c.slow(took, most, embeddingTable+" deadline")
	return nil
}

func (o Options) checkRerank(ctx context.Context, c *Checkup) error {
	r, end, err := o.reranker()
	if err != nil {
		return wrong(rerankTable, err)
	}
	defer end()
	texts := []string{"Read the contents of a file", "Send an e-mail"}
	if _, err := r.Rerank(ctx, "read a file", texts); err != nil {
		return err
	}
	began := time.Now()
	scores, err := r.Rerank(ctx, "read a file", texts)
	if err != nil {
		return err
	}
	took, most := time.Since(began), cmp.Or(o.Settings.Rerank.Timeout, index.DefaultJudgeDeadline)
	if c.Answer = cmp.Or(o.Settings.Rerank.Model, o.Settings.Rerank.URL) + ", and answers"; scores[0] <= scores[1] {
		return errors.New("it takes sending an e-mail for a better answer to \"read a file\" than reading one: is it a model for this?")
	}
	c.slow(took, most, rerankTable+" timeout")
	return nil
}

func (c *Checkup) slow(took, most time.Duration, setting string) {
	if took > most {
		c.Slow = fmt.Sprintf("it takes %v, and a question waits %v: raise %s, or tools are found without it",
			took.Round(time.Millisecond), most, setting)
	}
}
