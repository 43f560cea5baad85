package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Node is one message in the tree of a conversation.
type Node struct {
	// ID is the entry after which [Session.Branch] continues: for a message with calls, the last of their results.
	ID string `json:"id"`
	// Parent is the ID of the message before; empty for the first.
	Parent string    `json:"parent,omitempty"`
	Kind   EntryKind `json:"kind"`
	Time   time.Time `json:"time"`
	// Text is the text of the message, and Calls the number of its calls.
	Text  string `json:"text,omitempty"`
	Calls int    `json:"calls,omitempty"`
	// Current reports that the message belongs to the conversation as it is now.
	Current bool `json:"current,omitempty"`
}

// Tree returns the messages of the session's own agent in the order in which they were written: prompts, answers of the
// model and summaries. It reads the history.
func (s *Session) Tree(ctx context.Context) ([]Node, error) {
	r, err := s.readHistory(ctx)
	if err != nil {
		return nil, err
	}
	var nodes []Node
	of := map[string]int{} // the index of the node that an entry belongs to, plus one
	for _, id := range r.order {
		e := r.entries[id]
		of[id] = of[e.Parent]
		switch {
		case e.Agent != "":
			continue
		case e.Kind == PromptEntry || e.Kind == ModelEntry || e.Kind == SummaryEntry:
			node := Node{ID: id, Kind: e.Kind, Time: e.Time, Text: e.Text}
			if parent := of[e.Parent]; parent > 0 {
				node.Parent = nodes[parent-1].ID
			}
			if e.Message != nil {
				node.Text, node.Calls = e.Message.Text(), len(e.Message.ToolCalls())
			}
			nodes = append(nodes, node)
			of[id] = len(nodes)
		case e.Kind == ResultEntry && of[id] > 0:
			nodes[of[id]-1].ID = id
		}
	}
	for id := s.head(); id != ""; id = r.entries[id].Parent {
		if i := of[id]; i > 0 {
			nodes[i-1].Current = true
		}
	}
	return nodes, nil
}

// Branch continues the conversation after one of its entries, such as a Node of Tree. What followed it stays in the
// history. An empty ID begins an empty conversation.
func (s *Session) Branch(ctx context.Context, id string) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	r, err := s.readHistory(ctx)
	if err != nil {
		return err
	}
	if e, ok := r.entries[id]; id != "" && (!ok || e.Agent != "") {
		return fmt.Errorf("branch: the conversation has no entry %q", id)
	}
	path, err := r.path(id)
	if err != nil {
		return fmt.Errorf("branch: %w", err)
	}
	var next conversation
	for _, e := range path {
		next.follow(e)
	}
	if len(next.transcript.open) > 0 {
		return errors.New("branch: the entry is followed by results of its calls; branch after the last of them")
	}
	if _, err := s.root.append(ctx, Entry{Kind: HeadEntry, Parent: id}); err != nil {
		return err
	}
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	s.root.transcript, s.root.measured = next.transcript, measurement{}
	s.root.breaker.reset()
	s.root.about = ""
	return nil
}

// Clear begins an empty conversation in the same session. The earlier one stays in the history.
func (s *Session) Clear(ctx context.Context) error { return s.Branch(ctx, "") }

// readHistory reads all entries.
func (s *Session) readHistory(ctx context.Context) (replay, error) {
	r := newReplay()
	for e, err := range s.history.Entries(ctx) {
		if err != nil {
			return r, fmt.Errorf("read the history: %w", err)
		}
		r.add(e)
	}
	return r, nil
}

func (s *Session) head() string {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	return s.root.head
}
