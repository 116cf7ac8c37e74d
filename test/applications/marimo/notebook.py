import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    name = mo.ui.text(label="Your name")
    name
    return mo, name


@app.cell
def _(mo, name):
    mo.md(f"Hello {name.value}!")
    return


if __name__ == "__main__":
    app.run()
