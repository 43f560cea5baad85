deck = tools.ppt
made = str(deck.create_presentation(id="steins_gate"))
for title in ["STEINS;GATE", "Story: a microwave that sends mails to the past", "Okabe, Kurisu, Mayuri and the Lab",
              "World lines, D-Mails and the Attractor Field", "Games, series and films"]:
    deck.add_slide(layout_index=1, title=title, presentation_id="steins_gate")
print(made[:300], deck.save_presentation(file_path="/root/ppt/STEINS_GATE.pptx", presentation_id="steins_gate"))
