text = """# Llullaillaco

Llullaillaco is a dormant stratovolcano of 6,739 m on the border of Argentina and Chile, in the Puna de Atacama. It is the second
highest active volcano of the world. Its last eruptions were recorded in the nineteenth century.

Near the summit is the highest archaeological site on Earth. In 1999 three Inca children were found there, mummified by the cold, whom the
Inca had sacrificed about five hundred years ago. They are kept in a museum in Salta.
"""
print(tools.filesystem.write_file(path="/root/markdown/Llullaillaco.md", content=text))
