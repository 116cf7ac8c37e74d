import panel as pn

pn.extension()
name = pn.widgets.TextInput(name="Your name")
pn.Column(name, pn.bind(lambda name: f"Hello {name}!", name)).servable()
